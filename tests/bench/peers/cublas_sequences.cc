// The sequences as a user of cuBLAS alone writes them, for peers_bench.py, which loads this with ctypes.
// cuBLAS itself is loaded at run time (that of torch or of the system); the CUDA headers are needed to build,
// no toolkit to run.
//
// BLAS works in place, so results that must not overwrite an input begin with a copy; scaling and adding into
// a third place is done by geam, which is the fewest passes that cuBLAS offers. Matrices are row major:
// cuBLAS sees them transposed, so A*x is op T and A'*x is op N.
#include <cublas_v2.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace {

char error_text[512];

// Keeps the text for fusion_cublas_error; returns 1.
int Fail(const char* what, const char* detail) {
  std::snprintf(error_text, sizeof error_text, "%s: %s", what, detail);
  return 1;
}

struct Library {
  decltype(&cublasCreate_v2) Create;
  decltype(&cublasGetVersion_v2) GetVersion;
  decltype(&cublasSetStream_v2) SetStream;
  decltype(&cublasSetWorkspace_v2) SetWorkspace;
  decltype(&cublasSetPointerMode_v2) SetPointerMode;
  decltype(&cublasGetStatusString) GetStatusString;
  decltype(&cublasScopy_v2) Scopy;
  decltype(&cublasDcopy_v2) Dcopy;
  decltype(&cublasSaxpy_v2) Saxpy;
  decltype(&cublasDaxpy_v2) Daxpy;
  decltype(&cublasSdot_v2) Sdot;
  decltype(&cublasDdot_v2) Ddot;
  decltype(&cublasSgemv_v2) Sgemv;
  decltype(&cublasDgemv_v2) Dgemv;
  decltype(&cublasSger_v2) Sger;
  decltype(&cublasDger_v2) Dger;
  decltype(&cublasSgeam) Sgeam;
  decltype(&cublasDgeam) Dgeam;
  decltype(&cublasSgemmStridedBatched) SgemmStridedBatched;
  decltype(&cublasDgemmStridedBatched) DgemmStridedBatched;
};
Library library;
cublasHandle_t handle = nullptr;
void* current_stream = nullptr;
bool stream_is_set = false;
void* workspace = nullptr;
size_t workspace_bytes = 0;

// The routines of one type under one name.
template <class T>
struct Blas;
template <>
struct Blas<float> {
  static auto Copy() { return library.Scopy; }
  static auto Axpy() { return library.Saxpy; }
  static auto Dot() { return library.Sdot; }
  static auto Gemv() { return library.Sgemv; }
  static auto Ger() { return library.Sger; }
  static auto Geam() { return library.Sgeam; }
  static auto GemmBatched() { return library.SgemmStridedBatched; }
};
template <>
struct Blas<double> {
  static auto Copy() { return library.Dcopy; }
  static auto Axpy() { return library.Daxpy; }
  static auto Dot() { return library.Ddot; }
  static auto Gemv() { return library.Dgemv; }
  static auto Ger() { return library.Dger; }
  static auto Geam() { return library.Dgeam; }
  static auto GemmBatched() { return library.DgemmStridedBatched; }
};

// One call of a sequence: sizes m x n (vectors and lists have n entries), scalars, and buffers: inputs,
// outputs and temporaries in the order of sequences.py. The first status that is no success is kept.
template <class T>
class Call {
 public:
  Call(int64_t m, int64_t n, const double* scalars, void* const* buffers)
      : m_(static_cast<int>(m)), n_(static_cast<int>(n)), scalars_(scalars), buffers_(buffers) {}

  T* operator[](int i) const { return static_cast<T*>(buffers_[i]); }
  T Scalar(int i) const { return static_cast<T>(scalars_[i]); }
  int m() const { return m_; }
  int n() const { return n_; }
  int entries() const { return m_ * n_; }  // at most 2^28
  cublasStatus_t status() const { return status_; }

  void Copy(int n, const T* x, T* y) { Note(Blas<T>::Copy()(handle, n, x, 1, y, 1)); }
  void Axpy(int n, T a, const T* x, T* y) { Note(Blas<T>::Axpy()(handle, n, &a, x, 1, y, 1)); }
  // The result stays on the device.
  void Dot(int n, const T* x, const T* y, T* result) {
    library.SetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
    Note(Blas<T>::Dot()(handle, n, x, 1, y, 1, result));
    library.SetPointerMode(handle, CUBLAS_POINTER_MODE_HOST);
  }
  // y = a*A*x + b*y and y = a*A'*x + b*y.
  void Gemv(T a, const T* A, const T* x, T b, T* y) {
    Note(Blas<T>::Gemv()(handle, CUBLAS_OP_T, n_, m_, &a, A, n_, x, 1, &b, y, 1));
  }
  void Gemtv(T a, const T* A, const T* x, T b, T* y) {
    Note(Blas<T>::Gemv()(handle, CUBLAS_OP_N, n_, m_, &a, A, n_, x, 1, &b, y, 1));
  }
  // A = A + u*v'.
  void Ger(const T* u, const T* v, T* A) {
    const T one = 1;
    Note(Blas<T>::Ger()(handle, n_, m_, &one, v, 1, u, 1, A, n_));
  }
  // z = a*x + b*y; y null: z = a*x. All are seen as matrices, with columns of 8192 where that divides them.
  void Add(int entries, T a, const T* x, T b, const T* y, T* z) {
    const int rows = entries % 8192 == 0 ? 8192 : entries;
    const T zero = 0;
    Note(Blas<T>::Geam()(handle, CUBLAS_OP_N, CUBLAS_OP_N, rows, entries / rows, &a, x, rows,
                         y == nullptr ? &zero : &b, y == nullptr ? x : y, rows, z, rows));
  }
  // C = A*B + c*C of n lists of k x k matrices.
  void Products(int k, const T* A, const T* B, T c, T* C) {
    const T one = 1;
    Note(Blas<T>::GemmBatched()(handle, CUBLAS_OP_N, CUBLAS_OP_N, k, k, k, &one, B, k, k * k, A, k, k * k, &c,
                                C, k, k * k, n_));
  }

 private:
  void Note(cublasStatus_t status) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = status;
  }

  const int m_, n_;
  const double* const scalars_;
  void* const* const buffers_;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

// Buffers of each: see sequences.py.
template <class T>
void Axpydot(Call<T>& c) {  // w, v, u; z, r
  c.Copy(c.n(), c[0], c[3]);
  c.Axpy(c.n(), -c.Scalar(0), c[1], c[3]);
  c.Dot(c.n(), c[3], c[2], c[4]);
}
template <class T>
void Vadd(Call<T>& c) {  // w, y, z; x
  c.Add(c.n(), 1, c[0], 1, c[1], c[3]);
  c.Axpy(c.n(), 1, c[2], c[3]);
}
template <class T>
void Waxpby(Call<T>& c) {  // x, y; w
  c.Add(c.n(), c.Scalar(0), c[0], c.Scalar(1), c[1], c[2]);
}
template <class T>
void Sscal(Call<T>& c) {  // x; y
  c.Add(c.n(), c.Scalar(0), c[0], 0, nullptr, c[1]);
}
template <class T>
void Atax(Call<T>& c) {  // A, x; y; t
  c.Gemv(1, c[0], c[1], 0, c[3]);
  c.Gemtv(1, c[0], c[3], 0, c[2]);
}
template <class T>
void Bicgk(Call<T>& c) {  // A, p, r; q, s
  c.Gemv(1, c[0], c[1], 0, c[3]);
  c.Gemtv(1, c[0], c[2], 0, c[4]);
}
template <class T>
void Sgemv(Call<T>& c) {  // A, x, y; z
  c.Copy(c.m(), c[2], c[3]);
  c.Gemv(c.Scalar(0), c[0], c[1], c.Scalar(1), c[3]);
}
template <class T>
void Sgemvt(Call<T>& c) {  // A, y, z; x, w
  c.Copy(c.n(), c[2], c[3]);
  c.Gemtv(c.Scalar(1), c[0], c[1], 1, c[3]);
  c.Gemv(c.Scalar(0), c[0], c[3], 0, c[4]);
}
template <class T>
void Gemver(Call<T>& c) {  // A, u1, v1, u2, v2, y, z; B, x, w
  c.Copy(c.entries(), c[0], c[7]);
  c.Ger(c[1], c[2], c[7]);
  c.Ger(c[3], c[4], c[7]);
  c.Copy(c.n(), c[6], c[8]);
  c.Gemtv(c.Scalar(1), c[7], c[5], 1, c[8]);
  c.Gemv(c.Scalar(0), c[7], c[8], 0, c[9]);
}
template <class T>
void Gesummv(Call<T>& c) {  // A, B, x; y
  c.Gemv(c.Scalar(0), c[0], c[2], 0, c[3]);
  c.Gemv(c.Scalar(1), c[1], c[2], 1, c[3]);
}
template <class T>
void Madd(Call<T>& c) {  // A, B; C
  c.Add(c.entries(), 1, c[0], 1, c[1], c[2]);
}
template <class T>
void Function2(Call<T>& c) {  // A, B, C, D; F
  c.Products(5, c[0], c[1], 0, c[4]);
  c.Products(5, c[0], c[2], 1, c[4]);
  c.Products(5, c[0], c[3], 1, c[4]);
}

struct Entry {
  const char* name;
  void (*run_f32)(Call<float>&);
  void (*run_f64)(Call<double>&);
};
constexpr Entry kEntries[] = {
    {"axpydot", Axpydot, Axpydot}, {"vadd", Vadd, Vadd},       {"waxpby", Waxpby, Waxpby},
    {"sscal", Sscal, Sscal},       {"atax", Atax, Atax},       {"bicgk", Bicgk, Bicgk},
    {"sgemv", Sgemv, Sgemv},       {"sgemvt", Sgemvt, Sgemvt}, {"gemver", Gemver, Gemver},
    {"gesummv", Gesummv, Gesummv}, {"madd", Madd, Madd},       {"function2", Function2, Function2}};
constexpr int kEntryCount = sizeof kEntries / sizeof kEntries[0];

template <class T>
int Run(void (*sequence)(Call<T>&), Call<T> call) {
  sequence(call);
  if (call.status() == CUBLAS_STATUS_SUCCESS) return 0;
  return Fail("cuBLAS", library.GetStatusString(call.status()));
}

}  // namespace

// All return 0 or, on failure, not 0: fusion_cublas_error says why. One thread at a time, with a current CUDA
// context.
extern "C" {

const char* fusion_cublas_error() { return error_text; }

// Loads cuBLAS from a path or name and makes a handle. The workspace, device memory of the caller, must live
// as long as calls are made: with it, calls can be captured into a CUDA graph.
int fusion_cublas_open(const char* path, void* workspace_memory, size_t bytes) {
  void* opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return Fail("dlopen", dlerror());
  const char* missing = nullptr;
  auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(opened, name));
    if (*function == nullptr && missing == nullptr) missing = name;
  };
  find("cublasCreate_v2", &library.Create);
  find("cublasGetVersion_v2", &library.GetVersion);
  find("cublasSetStream_v2", &library.SetStream);
  find("cublasSetWorkspace_v2", &library.SetWorkspace);
  find("cublasSetPointerMode_v2", &library.SetPointerMode);
  find("cublasGetStatusString", &library.GetStatusString);
  find("cublasScopy_v2", &library.Scopy);
  find("cublasDcopy_v2", &library.Dcopy);
  find("cublasSaxpy_v2", &library.Saxpy);
  find("cublasDaxpy_v2", &library.Daxpy);
  find("cublasSdot_v2", &library.Sdot);
  find("cublasDdot_v2", &library.Ddot);
  find("cublasSgemv_v2", &library.Sgemv);
  find("cublasDgemv_v2", &library.Dgemv);
  find("cublasSger_v2", &library.Sger);
  find("cublasDger_v2", &library.Dger);
  find("cublasSgeam", &library.Sgeam);
  find("cublasDgeam", &library.Dgeam);
  find("cublasSgemmStridedBatched", &library.SgemmStridedBatched);
  find("cublasDgemmStridedBatched", &library.DgemmStridedBatched);
  if (missing != nullptr) return Fail("this cuBLAS lacks", missing);
  if (cublasStatus_t status = library.Create(&handle); status != CUBLAS_STATUS_SUCCESS)
    return Fail("cublasCreate", library.GetStatusString(status));
  workspace = workspace_memory;
  workspace_bytes = bytes;
  stream_is_set = false;
  return 0;
}

int fusion_cublas_version(int* version) {
  if (handle == nullptr) return Fail("fusion_cublas_version", "fusion_cublas_open was not called");
  return library.GetVersion(handle, version) == CUBLAS_STATUS_SUCCESS ? 0
                                                                      : Fail("cublasGetVersion", "failed");
}

// The number of a sequence for fusion_cublas_run, or -1.
int fusion_cublas_find(const char* sequence) {
  for (int i = 0; i < kEntryCount; ++i)
    if (std::strcmp(kEntries[i].name, sequence) == 0) return i;
  return -1;
}

// Puts a sequence on a stream. entry_bytes: 4 for f32, 8 for f64.
int fusion_cublas_run(int sequence, int entry_bytes, int64_t m, int64_t n, const double* scalars,
                      void* const* buffers, void* stream) {
  if (handle == nullptr) return Fail("fusion_cublas_run", "fusion_cublas_open was not called");
  if (sequence < 0 || sequence >= kEntryCount) return Fail("fusion_cublas_run", "no such sequence");
  if (!stream_is_set || stream != current_stream) {
    if (library.SetStream(handle, static_cast<cudaStream_t>(stream)) != CUBLAS_STATUS_SUCCESS)
      return Fail("cublasSetStream", "failed");
    // A new stream takes the workspace back.
    if (library.SetWorkspace(handle, workspace, workspace_bytes) != CUBLAS_STATUS_SUCCESS)
      return Fail("cublasSetWorkspace", "failed");
    current_stream = stream;
    stream_is_set = true;
  }
  if (entry_bytes == 4) return Run(kEntries[sequence].run_f32, Call<float>(m, n, scalars, buffers));
  if (entry_bytes == 8) return Run(kEntries[sequence].run_f64, Call<double>(m, n, scalars, buffers));
  return Fail("fusion_cublas_run", "entries of 4 or 8 bytes");
}

}  // extern "C"
