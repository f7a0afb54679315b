"""A pipeline under a steady load for an hour: does anything grow?"""
