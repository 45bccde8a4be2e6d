int n, G, B;
float alpha, x[n], y[n];
#pragma omp target teams distribute parallel for num_teams(G) thread_limit(B) map(to : x) map(tofrom : y)
for (int i = 0; i < n; i++) y[i] = alpha * x[i] + y[i];
