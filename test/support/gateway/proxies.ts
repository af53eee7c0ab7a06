import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { answers } from '../../../tools/servers/probe.ts'
import { findProgram, type Program } from '../../../tools/servers/programs.ts'
import { type Place, quote, type Recipe, startPrivate } from '../../../tools/servers/server.ts'

/** A common proxy between a gateway and a service. */
export type ProxyKind = 'nginx' | 'haproxy'

export const proxyKinds: readonly ProxyKind[] = ['nginx', 'haproxy']

const programs: Readonly<Record<ProxyKind, Program>> = {
  nginx: { name: 'nginx', variable: 'ONCEONLY_TEST_NGINX', packages: ['nginx-light'] },
  haproxy: { name: 'haproxy', variable: 'ONCEONLY_TEST_HAPROXY', packages: ['haproxy'] },
}

/** Connections to the service are kept and shared: what one request leaves behind would meet the next. */
const settings: Readonly<Record<ProxyKind, (place: Place, servicePort: number) => string>> = {
  nginx: ({ folder, port }, servicePort) => `
daemon off;
worker_processes 1;
pid ${folder}/pid;
error_log stderr;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream service { server 127.0.0.1:${servicePort}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }
  }
}
`,
  haproxy: ({ port }, servicePort) => `
global
  maxconn 256
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  http-reuse always
listen service
  bind 127.0.0.1:${port}
  server only 127.0.0.1:${servicePort}
`,
}

const commands: Readonly<Record<ProxyKind, string>> = {
  nginx: '-e stderr -c',
  haproxy: '-db -f',
}

/** Its path, or null with a warning, which is an error under `CI=true`. */
export const findProxy = (kind: ProxyKind) => findProgram(programs[kind])

/** @returns the URL of a proxy of our own in front of the service */
export async function startProxy(
  context: TestContext,
  kind: ProxyKind,
  program: string,
  servicePort: number,
): Promise<string> {
  const recipe: Recipe = {
    kind,
    variable: programs[kind].variable,
    packages: programs[kind].packages,
    accounts: ['www-data', 'haproxy', 'nobody'],
    stopSignal: 'TERM',
    find: () => dirname(program),
    script(_folder, place) {
      const file = quote(join(place.folder, 'settings'))
      return `
        printf %s ${quote(settings[kind](place, servicePort))} >${file}
        exec ${quote(program)} ${commands[kind]} ${file}`
    },
    isReady: ({ port }) => answers(port, 'GET /ready HTTP/1.1\r\nHost: x\r\n\r\n', 'HTTP/1.1 '),
    url: ({ port }) => `http://127.0.0.1:${port}`,
  }
  const server = await startPrivate(recipe, dirname(program), () => {})
  context.after(() => server.stop())
  return server.url
}
