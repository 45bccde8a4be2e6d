#include "server/identity/openssl_exit.h"

#include <openssl/crypto.h>

namespace fusion {

void KeepOpenSslToTheEnd() { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

}  // namespace fusion
