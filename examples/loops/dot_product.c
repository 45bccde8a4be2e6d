// The scalar product of two vectors. Nothing says that its iterations may be added up in another order but that they are a sum.
int n;
float x[n], y[n], product;
#pragma fusion parametric
for (int i = 0; i < n; i++)
    product += x[i] * y[i];
