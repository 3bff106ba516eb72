# The command in a container, with compiled kernels: nothing is compiled at its first use.
#
#     docker build -t darwinn .
#     docker run --rm -v "$PWD:/work" darwinn verify model_edgetpu.tflite --reference model.tflite
FROM python:3.11-slim-bookworm AS build
COPY . /source
# Of the environment of the build too: kernels belong to a version of Numba.
ENV PIP_CONSTRAINT=/source/constraints.txt PIP_BUILD_CONSTRAINT=/source/constraints.txt
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.11-slim-bookworm
COPY constraints.txt /tmp/
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --constraint /tmp/constraints.txt "$(ls /wheels/*.whl)[full]"
# Files of strangers: nobody in particular runs the command.
RUN useradd --uid 1000 --create-home darwinn
USER 1000
WORKDIR /work
ENTRYPOINT ["darwinn"]
CMD ["--help"]
