# syntax=docker/dockerfile:1
# The server in a container, for those who have a registry (deploy/image.sh makes a smaller image without one). The steps
# are those of any other machine: deploy/install-deps.sh, the `release` preset, the `bundle` target.
#
#   docker build -t tilewire .                          with the CUDA device (falls back to the CPU where no GPU is lent)
#   docker build -t tilewire:cpu --build-arg BUILD_BASE=ubuntu:24.04 .
#   docker run --rm --gpus all --read-only -p 50051:50051 -v ./tls:/tls:ro -e TILEWIRE_TLS_CERT=/tls/cert.pem -e TILEWIRE_TLS_KEY=/tls/key.pem tilewire
#
# The CUDA device is built where BUILD_BASE has nvcc. RUNTIME_BASE needs the glibc of BUILD_BASE or a newer one.
ARG BUILD_BASE=nvidia/cuda:13.0.1-devel-ubuntu24.04
ARG RUNTIME_BASE=ubuntu:24.04

FROM ${BUILD_BASE} AS build
WORKDIR /src
# Its own layer: the packages change far less often than the sources.
COPY deploy/install-deps.sh deploy/install-deps.sh
RUN deploy/install-deps.sh && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release -DTILEWIRE_TESTS=OFF && cmake --build build/release --target bundle

# The CUDA runtime is linked in and the container runtime lends the driver, so one plain base serves both devices.
FROM ${RUNTIME_BASE}
LABEL org.opencontainers.image.title="Tilewire" \
      org.opencontainers.image.description="GPU array kernels over gRPC" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /src/build/release/bundle /opt/tilewire
ENV PATH=/opt/tilewire/bin:$PATH \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
# A number, so that Kubernetes can verify runAsNonRoot. The server writes no files: a read-only root is enough.
USER 65532:65532
WORKDIR /tmp
EXPOSE 50051
# The server drains on SIGTERM for up to --drain-seconds (30): give `docker stop` at least as long (-t 35).
STOPSIGNAL SIGTERM
# Asks the listener of health, which needs neither certificate nor token: keep --health-listen where other arguments
# replace these.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["/opt/tilewire/bin/tilewire", "--server", "localhost:50052", "--timeout", "3", "ping"]
ENTRYPOINT ["/opt/tilewire/bin/tilewired"]
# Without certificates (TILEWIRE_TLS_CERT, TILEWIRE_TLS_KEY) it does not start: clear text for a whole network is a
# decision (-e TILEWIRE_INSECURE=on).
CMD ["--listen", "0.0.0.0:50051", "--health-listen", "localhost:50052"]
