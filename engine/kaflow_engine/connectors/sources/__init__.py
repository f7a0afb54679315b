"""What sources share: what each must offer, which kinds there are, and how records look."""
