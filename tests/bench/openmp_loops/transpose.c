int n, G, B;
float a[n][n], b[n][n];
#pragma omp target teams distribute num_teams(G) thread_limit(B) map(to : a) map(from : b)
for (int i = 0; i < n; i++)
#pragma omp parallel for
  for (int j = 0; j < n; j++) b[j][i] = a[i][j];
