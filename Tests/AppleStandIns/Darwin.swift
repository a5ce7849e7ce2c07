// A stand-in for Apple's C library, which only has to be importable.
