# SPDX-License-Identifier: Apache-2.0
# mrrope on the CPU, as a server.
#   docker build -t mrrope .
#   docker run -p 127.0.0.1:8080:8080 -v "$PWD/models:/models:ro" mrrope serve /models/model.gguf --host 0.0.0.0 --ctx 32k
# Without a command it serves the bundled model. For clients on other machines add --api-key-file, and TLS in
# front of it: SECURITY.md says why.
FROM debian:bookworm-slim AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
COPY . /src
WORKDIR /src
# ./run installs what it needs, fetches llama.cpp and makes the Debian packages.
RUN ./run package

FROM debian:bookworm-slim
COPY --from=build /src/build/package/dist/mrrope_*.deb /packages/
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates /packages/*.deb \
    && rm -rf /packages /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home mrrope
USER 10001
WORKDIR /home/mrrope
EXPOSE 8080
ENTRYPOINT ["mrrope"]
CMD ["serve", "/usr/share/mrrope/models/mrrope-tiny.gguf", "--host", "0.0.0.0"]
