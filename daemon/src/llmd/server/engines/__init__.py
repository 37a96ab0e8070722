"""Engine processes, and the requests that outlive them."""
