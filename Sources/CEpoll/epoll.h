/// Linux tells with this which of many sockets have something to read.
#include <sys/epoll.h>
