# The command in a container, with compiled kernels: nothing is compiled at its first use.
#
#     docker build -t darwinn .
#     docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" darwinn \
#         verify model_edgetpu.tflite --reference model.tflite --junit result.xml
#
# With --user, what it writes to the mounted folder belongs to whoever has started it.
FROM python:3.11-slim-bookworm AS build
COPY . /source
# Of the environment of the build too: kernels belong to a version of Numba.
ENV PIP_CONSTRAINT=/source/constraints.txt PIP_BUILD_CONSTRAINT=/source/constraints.txt
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.11-slim-bookworm
COPY constraints.txt /tmp/
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --constraint /tmp/constraints.txt "$(ls /wheels/*.whl)[full]"
# `darwinn delegate` and `darwinn device` build libraries in C for the programs that they run.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
# Files of strangers: nobody in particular runs the command. Whoever does can write the caches.
RUN useradd --uid 1000 --create-home darwinn && mkdir --mode 1777 /cache
ENV HOME=/tmp XDG_CACHE_HOME=/cache
USER 1000
WORKDIR /work
ENTRYPOINT ["darwinn"]
CMD ["--help"]
