"""What a run leaves behind and what is told of it: states, folder, metrics, report, observers. Knows no provider."""
