// What OpenSSL does when the process ends.
#pragma once

namespace fusion {

// OpenSSL takes its tables down in exit(), where threads of gRPC may still read a certificate or end a
// handshake: they crash. Its memory is left to the kernel instead. For the beginning of main(): what has used
// OpenSSL before has settled it already.
void KeepOpenSslToTheEnd();

}  // namespace fusion
