set(TILEWIRE_RMSE_SOURCES rmse/plan.cc rmse/host.cc)
set(TILEWIRE_RMSE_CUDA_SOURCES rmse/rmse.cu)
