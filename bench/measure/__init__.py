"""The product and Spark alone, run and measured."""
