// Reversing an array, as serial C (Chen et al. 2017, "Automatic CUDA code generation").
int N;
int In[N], Out[N];
#pragma fusion parametric
for (int i = 0; i < N; i++)
    Out[N-1-i] = In[i];
