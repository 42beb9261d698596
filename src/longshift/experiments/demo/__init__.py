"""The two-minute demonstration: ERM against NDCL on the embedded digits, one page of results."""
