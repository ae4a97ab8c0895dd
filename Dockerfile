# The suite with all that it needs, and nothing that requirements.lock does not name.
#   docker build --tag cdfsg .
#   docker run --rm cdfsg                       lists the targets of make
#   docker run --rm cdfsg make quick            the pipeline on a small scale
#   docker run --rm --publish 127.0.0.1:8888:8888 cdfsg jupyter lab --ip 0.0.0.0 notebooks
FROM python:3.11-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home --uid 1000 --shell /bin/bash user
USER user
# Made by the user, who then may write into it; not every builder lets WORKDIR do so.
RUN mkdir /home/user/cdfsg
WORKDIR /home/user/cdfsg

# Beside the repository and not in it, where a mounted copy would hide it.
ENV VIRTUAL_ENV=/home/user/venv
ENV PATH="$VIRTUAL_ENV/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1

# First the lock alone: what it installs is kept by the builder until the lock changes.
COPY --chown=user requirements.lock ./
RUN python -m venv "$VIRTUAL_ENV" && pip install --require-hashes -r requirements.lock

# The link and the mark tell the Makefile that its environment is ready.
COPY --chown=user . .
RUN pip install --no-deps --no-build-isolation -e . && ln -s "$VIRTUAL_ENV" .venv && touch .venv/ready

EXPOSE 8888
CMD ["make", "help"]
