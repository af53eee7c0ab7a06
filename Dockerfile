# The server of this repository, with its console: docker build -t onceonly . && docker run -p 4000:4000 -v onceonly:/data -e ONCEONLY_OPERATOR_TOKEN=… onceonly
FROM node:24-bookworm-slim AS build
WORKDIR /app
# The lock file first, so that a change of the source does not fetch every package again.
COPY package.json package-lock.json ./
COPY service/package.json service/
COPY console/package.json console/
COPY tools/node/package.json tools/node/
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY bin bin
COPY console console
COPY src src
COPY service service
RUN node console/build.ts
RUN npm prune --omit=dev --omit=optional --ignore-scripts

FROM node:24-bookworm-slim
# Only the user of the server can read its data.
RUN install -d -o node -g node -m 700 /data
WORKDIR /app
COPY --from=build /app ./
USER node
# Public: there is no demo workspace, and the console needs a token (ONCEONLY_OPERATOR_TOKEN).
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 ONCEONLY_DATA=/data
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=8", "--conditions=onceonly-source", "service/main.ts"]
