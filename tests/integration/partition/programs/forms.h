// Declares the C++ loop forms of forms.cc for the driver that runs them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// A matrix that points to its elements.
struct Matrix {
  double* data;
  int rows, columns;
  double& at(int i, int j) { return data[static_cast<std::size_t>(i) * columns + j]; }
  double at(int i, int j) const { return data[static_cast<std::size_t>(i) * columns + j]; }
};

struct Body {
  float x, y, z, mass;
};

constexpr int kGrid = 96;
extern float factor;
extern double grid[kGrid][kGrid], next_grid[kGrid][kGrid];

void VectorByIndex(std::vector<double>& a, const std::vector<double>& b);
void VectorByInt(std::vector<double>& a, const std::vector<double>& b, int n);
void RangeFor(std::vector<double>& a);
void Spans(std::span<double> a, std::span<const double> b);
void UnsignedIndex(double* a, const double* b, unsigned n);
void UnsignedRows(double* a, const double* b, unsigned n, unsigned m);
void SizeRows(double* a, const double* b, std::size_t n, std::size_t m);
void MovingPointers(double* a, const double* b, int n);
void Downward(double* a, int n);
void StepFour(double* a, int n);
void UpToN(double* a, int n);
void ClassByReference(Matrix& a, const Matrix& b, const Matrix& c);
void ClassByValue(Matrix a, const Matrix b, const Matrix c);
void VectorOfVectors(std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b);
void IndirectRead(double* __restrict a, const double* __restrict b, const int* __restrict index, int n);
void SparseProduct(double* __restrict y, const double* __restrict value, const double* __restrict x,
                   const int* __restrict column, const int* __restrict row, int n);
void Scatter(double* a, const double* b, const int* index, int n);
void Exponential(double* a, const double* b, int n);
void IfElse(double* a, const double* b, int n);
void PartialWrite(double* a, const double* b, int n);
double FloatSum(const double* a, int n);
long IntegerSum(const int* a, int n);
int EarlyExit(const double* a, int n);
void CheckedAt(std::vector<double>& a);
void GlobalFactor(float* a, const float* b, int n);
void ArrayOfStructs(Body* p, int n);
void Forces(Body* __restrict f, const Body* __restrict p, int n);
void Mandelbrot(int* counts, int width, int height);
void Transform(std::vector<float>& a);
void Histogram(int* counts, const unsigned char* pixels, int n);
void GlobalGrid();
void Triangular(double* a, std::int64_t n);
void PointerRows(double** a, int n, int m);
void LocalArray(double* a, const double* b, int n);
void LocalOfInlined(double* a, const double* b, int n);
void ScratchVector(Matrix& a, std::vector<double>& part);
void ScratchOnStack(double* a, int n);
void ScratchThatGoesOn(double* a, int n);
void ScratchUnderACondition(double* a, int n);
