// Stands for Apple's C library: that it can be imported is all that is needed of it.
