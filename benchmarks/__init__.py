"""What Refold costs, as ratios measured side by side: `python -m benchmarks NAME`."""
