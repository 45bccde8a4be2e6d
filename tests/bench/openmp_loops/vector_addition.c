int n, G, B;
float a[n], b[n], c[n];
#pragma omp target teams distribute parallel for num_teams(G) thread_limit(B) map(to : a, b) map(from : c)
for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
