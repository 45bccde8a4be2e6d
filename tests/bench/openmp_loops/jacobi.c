int n, T, G, B;
float a[n], b[n];
for (int t = 0; t < T; t++) {
#pragma omp target teams distribute parallel for num_teams(G) thread_limit(B)
  for (int i = 1; i < n - 1; i++) b[i] = (a[i - 1] + a[i] + a[i + 1]) / 3;
#pragma omp target teams distribute parallel for num_teams(G) thread_limit(B)
  for (int i = 1; i < n - 1; i++) a[i] = b[i];
}
