"""What every dialect runs alike: a request to the tokens and pieces of its answer."""
