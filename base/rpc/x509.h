// OpenSSL's objects as owned pointers. Private to server/identity.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"

namespace fusion {

struct X509Deleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using CertificatePointer = std::unique_ptr<X509, X509Deleter>;
using KeyPointer = std::unique_ptr<EVP_PKEY, X509Deleter>;

// Empty: there is none, or one cannot be read.
std::vector<CertificatePointer> ReadCertificates(const std::string& pem);
// The certificate in PEM whose DER is this in base64. "": it is none.
std::string PemOfBase64(const std::string& base64);
// Null: there is none, it cannot be read, or it is encrypted.
KeyPointer ReadPrivateKey(const std::string& pem);
// 64 hex digits.
std::string FingerprintOf(const X509& certificate);
// 1970 for a time that cannot be read.
Timestamp TimeOf(const ASN1_TIME* time);

}  // namespace fusion
