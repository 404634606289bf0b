package main

// flagNames returns what a library says of its settings, with the flags that set them.
func flagNames(err error) string { return err.Error() }
