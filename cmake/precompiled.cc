// The library that precompiled.h is compiled for; it has nothing else.
