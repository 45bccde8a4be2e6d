#include "base/rpc/x509.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "absl/strings/escaping.h"

namespace fusion {
namespace {

std::unique_ptr<BIO, X509Deleter> BioOf(const std::string& text) {
  return std::unique_ptr<BIO, X509Deleter>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Keys with passwords are refused: there is nobody to ask.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

std::vector<CertificatePointer> ReadCertificates(const std::string& pem) {
  auto bio = BioOf(pem);
  std::vector<CertificatePointer> certificates;
  while (CertificatePointer certificate{PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)})
    certificates.push_back(std::move(certificate));
  // The end of the text is no error; anything else is.
  const unsigned long error = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) certificates.clear();
  return certificates;
}

std::string PemOfBase64(const std::string& base64) {
  std::string der;
  if (!absl::Base64Unescape(base64, &der)) return "";
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  const CertificatePointer certificate(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
  const std::unique_ptr<BIO, X509Deleter> text(BIO_new(BIO_s_mem()));
  const bool printed = certificate && PEM_write_bio_X509(text.get(), certificate.get()) == 1;
  ERR_clear_error();
  char* begin = nullptr;
  const long size = BIO_get_mem_data(text.get(), &begin);
  return printed ? std::string(begin, static_cast<size_t>(size)) : "";
}

KeyPointer ReadPrivateKey(const std::string& pem) {
  auto bio = BioOf(pem);
  KeyPointer key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

std::string FingerprintOf(const X509& certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(&certificate, EVP_sha256(), digest, &size) != 1) return "";
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

Timestamp TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return Timestamp();
  return std::chrono::time_point_cast<std::chrono::microseconds>(
      std::chrono::system_clock::from_time_t(timegm(&parts)));
}

}  // namespace fusion
