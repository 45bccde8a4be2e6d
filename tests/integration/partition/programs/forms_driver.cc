// Runs each form on the same numbers and prints a hash of all that it wrote: a line "Form HASH" for each.
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>

#include "tests/integration/partition/programs/forms.h"

namespace {

constexpr int kSize = 1000;

std::uint64_t hash = 0;

void Add(const void* data, std::size_t bytes) {
  const auto* byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ byte[i]) * 0x100000001b3;
}

template <class T>
void Add(const std::vector<T>& values) {
  Add(values.data(), values.size() * sizeof(T));
}

template <class T>
std::vector<T> Numbers(int n, unsigned seed) {
  std::vector<T> values(n);
  for (T& x : values) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<T>((seed >> 16) % 2048 / 1024.0);
  }
  return values;
}

std::vector<int> Indices(int n, unsigned seed, int below) {
  std::vector<int> values(n);
  for (int& x : values) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<int>((seed >> 16) % below);
  }
  return values;
}

std::vector<Body> Bodies(int n) {
  std::vector<float> numbers = Numbers<float>(4 * n, 5);
  std::vector<Body> bodies(n);
  std::memcpy(bodies.data(), numbers.data(), n * sizeof(Body));
  return bodies;
}

// Calls run(a, b) with two arrays of n numbers for many n, and adds what it left in them.
template <class T = double, class Run>
void Form(const std::string& name, Run run) {
  hash = 0xcbf29ce484222325;
  for (int n : {0, 1, 2, 3, 7, 64, kSize}) {
    std::vector<T> a = Numbers<T>(n + 8, 1), b = Numbers<T>(n + 8, 2);
    run(a, b, n);
    Add(a);
    Add(b);
  }
  std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(hash));
}

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

void Flat() {
  Form("VectorByIndex", [](Doubles& a, Doubles& b, int) { VectorByIndex(a, b); });
  Form("VectorByInt", [](Doubles& a, Doubles& b, int n) { VectorByInt(a, b, n); });
  Form("RangeFor", [](Doubles& a, Doubles&, int) { RangeFor(a); });
  Form("Spans", [](Doubles& a, Doubles& b, int) { Spans(a, b); });
  Form("UnsignedIndex", [](Doubles& a, Doubles& b, int n) { UnsignedIndex(a.data(), b.data(), n); });
  Form("MovingPointers", [](Doubles& a, Doubles& b, int n) { MovingPointers(a.data(), b.data(), n); });
  Form("Downward", [](Doubles& a, Doubles&, int n) { Downward(a.data(), n); });
  Form("StepFour", [](Doubles& a, Doubles&, int n) { StepFour(a.data(), n); });
  Form("UpToN", [](Doubles& a, Doubles&, int n) { UpToN(a.data(), n); });
  Form("Exponential", [](Doubles& a, Doubles& b, int n) { Exponential(a.data(), b.data(), n); });
  Form("IfElse", [](Doubles& a, Doubles& b, int n) { IfElse(a.data(), b.data(), n); });
  Form("PartialWrite", [](Doubles& a, Doubles& b, int n) { PartialWrite(a.data(), b.data(), n); });
  Form("CheckedAt", [](Doubles& a, Doubles&, int) { CheckedAt(a); });
  Form("LocalArray", [](Doubles& a, Doubles& b, int n) { LocalArray(a.data(), b.data(), n / 6); });
  Form<float>("GlobalFactor", [](Floats& a, Floats& b, int n) { GlobalFactor(a.data(), b.data(), n); });
  Form<float>("Transform", [](Floats& a, Floats&, int) { Transform(a); });
}

void Scratch() {
  Form("ScratchVector", [](Doubles& a, Doubles& b, int n) {
    int side = 0;
    while ((side + 1) * (side + 2) < n) ++side;
    Matrix x{a.data(), side, side};
    ScratchVector(x, b);
  });
  Form("LocalOfInlined", [](Doubles& a, Doubles& b, int n) { LocalOfInlined(a.data(), b.data(), n); });
  Form("ScratchOnStack", [](Doubles& a, Doubles&, int n) { ScratchOnStack(a.data(), n); });
  Form("ScratchThatGoesOn", [](Doubles& a, Doubles&, int n) { ScratchThatGoesOn(a.data(), n); });
  Form("ScratchUnderACondition", [](Doubles& a, Doubles&, int n) { ScratchUnderACondition(a.data(), n); });
}

void Sums() {
  Form("FloatSum", [](Doubles& a, Doubles&, int n) { a[0] = FloatSum(a.data(), n); });
  Form("EarlyExit", [](Doubles& a, Doubles&, int n) { a[0] = EarlyExit(a.data(), n); });
  Form<int>("IntegerSum", [](std::vector<int>& a, std::vector<int>&, int n) {
    long sum = IntegerSum(a.data(), n);
    Add(&sum, sizeof sum);
  });
}

void Indirect() {
  Form("IndirectRead", [](Doubles& a, Doubles& b, int n) {
    IndirectRead(a.data(), b.data(), Indices(n, 3, n + 8).data(), n);
  });
  Form("Scatter",
       [](Doubles& a, Doubles& b, int n) { Scatter(a.data(), b.data(), Indices(n, 3, n + 8).data(), n); });
  Form("SparseProduct", [](Doubles& a, Doubles& b, int n) {
    std::vector<int> row = Indices(n + 1, 4, 5);
    row[0] = 0;
    std::partial_sum(row.begin(), row.end(), row.begin());
    Doubles value = Numbers<double>(row[n] + 1, 6);
    SparseProduct(a.data(), value.data(), b.data(), Indices(row[n] + 1, 7, n + 8).data(), row.data(), n);
  });
  Form<int>("Histogram", [](std::vector<int>& a, std::vector<int>&, int n) {
    std::vector<int> numbers = Indices(n, 8, n + 8 < 256 ? n + 8 : 256);
    std::vector<unsigned char> pixels(numbers.begin(), numbers.end());
    Histogram(a.data(), pixels.data(), n);
  });
}

template <class Product>
void Products(Doubles& a, Doubles& b, int n, Product product) {
  int side = 0;
  while ((side + 1) * (side + 2) < n) ++side;
  Doubles c = Numbers<double>((side + 1) * side, 9);
  Matrix x{a.data(), side, side}, y{b.data(), side, side + 1}, z{c.data(), side + 1, side};
  product(x, y, z);
}

void Rows() {
  Form("UnsignedRows", [](Doubles& a, Doubles& b, int n) { UnsignedRows(a.data(), b.data(), n / 7, 7); });
  Form("SizeRows", [](Doubles& a, Doubles& b, int n) { SizeRows(a.data(), b.data(), n / 7, 7); });
  Form("ClassByReference", [](Doubles& a, Doubles& b, int n) { Products(a, b, n, ClassByReference); });
  Form("ClassByValue", [](Doubles& a, Doubles& b, int n) { Products(a, b, n, ClassByValue); });
  Form("Triangular", [](Doubles& a, Doubles&, int n) {
    int side = 0;
    while ((side + 1) * (side + 1) < n) ++side;
    Triangular(a.data(), side);
  });
  Form("PointerRows", [](Doubles& a, Doubles&, int n) {
    std::vector<double*> rows;
    for (int i = 0; i < n / 9; ++i) rows.push_back(a.data() + 9 * i);
    PointerRows(rows.data(), n / 9, 9);
  });
  Form("VectorOfVectors", [](Doubles& a, Doubles& b, int n) {
    std::vector<Doubles> x(n / 20, a), y(n / 20, b);
    VectorOfVectors(x, y);
    for (const Doubles& row : x) Add(row);
  });
}

void Objects() {
  Form<float>("ArrayOfStructs", [](Floats&, Floats&, int n) {
    std::vector<Body> bodies = Bodies(n);
    ArrayOfStructs(bodies.data(), n);
    Add(bodies);
  });
  Form<float>("Forces", [](Floats&, Floats&, int n) {
    std::vector<Body> bodies = Bodies(n), forces = Bodies(n);
    Forces(forces.data(), bodies.data(), n);
    Add(forces);
  });
  Form<int>("Mandelbrot",
            [](std::vector<int>& a, std::vector<int>&, int n) { Mandelbrot(a.data(), 8, n / 8); });
  Form("GlobalGrid", [](Doubles&, Doubles&, int n) {
    Doubles values = Numbers<double>(kGrid * kGrid, n);
    std::memcpy(grid, values.data(), sizeof grid);
    GlobalGrid();
    Add(next_grid, sizeof next_grid);
  });
}

}  // namespace

int main() {
  Flat();
  Scratch();
  Sums();
  Indirect();
  Rows();
  Objects();
}
