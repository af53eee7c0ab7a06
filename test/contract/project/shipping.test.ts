import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { help } from '../../../service/config.ts'

const root = join(import.meta.dirname, '../../..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const there = (path: string) => assert.ok(existsSync(join(root, path)), `${path} is not there`)

test('the image is made of files that exist, and starts what `npm start` starts', () => {
  const lines = read('Dockerfile').split('\n')
  const copied = lines.flatMap((line) => /^COPY (?!--from)(.*) \S+$/.exec(line)?.[1]?.split(' ') ?? [])
  assert.ok(copied.length > 8)
  for (const path of copied) there(path)
  const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: { readonly start: string } }
  const [, builds, starts] = /^(.*) && exec (.*)$/.exec(scripts.start) ?? []
  assert.ok(lines.includes(`RUN ${builds}`))
  assert.ok(lines.includes(`CMD ${JSON.stringify(starts?.split(' ')).replaceAll(',', ', ')}`), starts)
  assert.ok(lines.some((line) => line.startsWith('HEALTHCHECK') && line.includes('/healthz')))
  assert.ok(lines.includes('USER node'))
})

test('the compose file sets only what the server reads, and mounts only what is there', () => {
  const compose = read('compose.yaml')
  const settings = new Set(help().match(/\bONCEONLY_\w+/g))
  const set = [...compose.matchAll(/^ +(ONCEONLY_\w+):/gm)].map(([, name = '']) => name)
  assert.ok(set.length > 4)
  for (const name of set) assert.ok(settings.has(name), name)
  const mounted = [...compose.matchAll(/- \.\/(\S+?):/g)].map(([, path = '']) => path)
  assert.equal(mounted.length, 4)
  for (const path of mounted) there(path)
})

test('the workflow runs what a checkout runs', () => {
  assert.match(read('.github/workflows/ci.yaml'), /^ +- run: \.\/\.ci\/run$/m)
  there('.ci/run')
})

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
