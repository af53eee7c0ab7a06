import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { BODY, type Client, type Command, idIn, RETRIED } from './command.ts'

const run = promisify(execFile)
const JSON_BODY = JSON.stringify(BODY)
const headersOf = ({ key }: Command) => [
  'Authorization: Bearer acme',
  'Content-Type: application/json',
  `Idempotency-Key: ${key}`,
]
/** Whole seconds are all that these programs know. */
const secondsOf = ({ timeoutMs }: Command) => String(Math.ceil(timeoutMs / 1_000))

const curl: Client = {
  name: 'curl --retry',
  program: 'curl',
  async send(command) {
    const headers = headersOf(command).flatMap((header) => ['-H', header])
    const retries = ['--retry', String(command.tries), '--retry-delay', '1', '--retry-connrefused']
    // A connection that breaks counts as something to retry only where all errors do; a 409 then, too.
    const all = ['--retry-all-errors', '--fail', '--max-time', secondsOf(command)]
    const { stdout } = await run('curl', [
      '-sS',
      ...retries,
      ...all,
      ...headers,
      '-d',
      JSON_BODY,
      `${command.url}/things`,
    ])
    return idIn(200, stdout)
  },
}

const wget: Client = {
  name: 'wget --tries',
  program: 'wget',
  async send(command) {
    const headers = headersOf(command).map((header) => `--header=${header}`)
    const retries = [`--tries=${command.tries}`, '--waitretry=1', `--retry-on-http-error=${RETRIED.join(',')}`]
    const options = ['-q', '-O', '-', `--timeout=${secondsOf(command)}`, `--post-data=${JSON_BODY}`]
    const { stdout } = await run('wget', [...options, ...retries, ...headers, `${command.url}/things`])
    return idIn(200, stdout)
  },
}

/** The interpreter itself, once: many machines have a script in its place that looks for it, every time. */
let python: Promise<string> | null = null

async function findPython(): Promise<string> {
  return (await run('python3', ['-c', 'import sys; print(sys.executable)'])).stdout.trim()
}

async function runPython(script: string, { key, url, tries, timeoutMs }: Command): Promise<string> {
  python ??= findPython()
  const args = [`${url}/things`, key, JSON_BODY, String(tries), String(timeoutMs / 1_000), JSON.stringify(RETRIED)]
  return idIn(200, (await run(await python, ['-c', script, ...args])).stdout)
}

const REQUESTS = `
import json, sys, requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry
url, key, body, tries, timeout, statuses = sys.argv[1:]
retry = Retry(total=int(tries), backoff_factor=0.05, backoff_max=0.1, allowed_methods=None,
              status_forcelist=json.loads(statuses), raise_on_status=False)
session = requests.Session()
session.mount('http://', HTTPAdapter(max_retries=retry))
headers = {'Authorization': 'Bearer acme', 'Content-Type': 'application/json', 'Idempotency-Key': key}
for attempt in range(int(tries)):
    try:
        answer = session.post(url, data=body, headers=headers, timeout=float(timeout))
        break
    except (requests.exceptions.ChunkedEncodingError, requests.exceptions.ConnectionError):
        # What breaks in the body is not retried by the adapter.
        if attempt + 1 == int(tries): raise
answer.raise_for_status()
print(json.dumps(answer.json()))
`

const pythonRequests: Client = {
  name: 'Python requests + Retry',
  program: 'python3',
  send: (command) => runPython(REQUESTS, command),
}

const URLLIB = `
import json, sys, time, urllib.error, urllib.request
url, key, body, tries, timeout, statuses = sys.argv[1:]
headers = {'Authorization': 'Bearer acme', 'Content-Type': 'application/json', 'Idempotency-Key': key}
for attempt in range(int(tries)):
    try:
        asked = urllib.request.Request(url, data=body.encode(), headers=headers, method='POST')
        with urllib.request.urlopen(asked, timeout=float(timeout)) as answer:
            print(json.dumps(json.load(answer)))
        break
    except urllib.error.HTTPError as error:
        if error.code not in json.loads(statuses) or attempt + 1 == int(tries): raise
    except (OSError, ValueError, __import__('http.client').client.HTTPException):
        if attempt + 1 == int(tries): raise
    time.sleep(0.05)
`

const pythonUrllib: Client = {
  name: 'Python urllib in a loop',
  program: 'python3',
  send: (command) => runPython(URLLIB, command),
}

export const programs: readonly Client[] = [curl, wget, pythonRequests, pythonUrllib]

/** Why a client cannot run here, or null. */
export async function whyMissing({ program, name }: Client): Promise<string | null> {
  if (program === undefined) return null
  const probe = name.includes('requests') ? ['-c', 'import requests'] : ['--version']
  try {
    await run(program, probe)
    return null
  } catch {
    return `${name} is not installed`
  }
}
