// How much is read of a connection before its reader must have found it empty.
//
// gRPC 1.51 sizes its buffers by what it read until a socket was empty, in an int: a client who sends faster
// than he is read, for 2 GiB, ends the process (`tcp->incoming_buffer->length != 0`). It learns that a socket
// is empty from the kernel, by what recvmsg says of its queue (TCP_INQ); this program has a recvmsg of its
// own, which now and then says so of one that is not.
#pragma once

#include <cstdint>

namespace tilewire::rpc {

/// A connection has that descriptor from now on, whatever had it before. Others are read as ever.
/// Thread-safe.
void BeginRounds(int fd);

/// What recvmsg is to say of the queue of that descriptor, of which so many bytes were read, and `queued` are
/// left: that, or 0. Nothing is lost by a 0: more was read since then than a socket holds, so some of it came
/// after its reader was told last of what had come, and he is told again. By one thread at a time.
int SayQueued(int fd, int64_t read_bytes, int queued);

}  // namespace tilewire::rpc
