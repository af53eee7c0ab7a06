import type { ShownOperation } from './shown.ts'

/** A request that can be pasted into a shell, with the variables that the page explains. */
export function curlOf(method: string, path: string, operation: ShownOperation): string {
  const { security, parameters = [], requestBody } = operation
  const names = security.flatMap((each) => Object.keys(each))
  const token = names.length === 0 ? null : names.includes('operator') ? '$OPERATOR' : '$KEY'
  const body = requestBody?.content['application/json']?.example
  const keyed = parameters.some(({ name }) => name === 'Idempotency-Key')
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => name.toUpperCase())
  const isPlain = method === 'GET' || (method === 'POST' && body !== undefined)
  return [
    `curl -i ${isPlain ? '' : `-X ${method} `}"$URL${url}"`,
    ...(token === null ? [] : [`-H "Authorization: Bearer ${token}"`]),
    ...(keyed ? [`-H 'Idempotency-Key: ${operation.operationId}-1'`] : []),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`]),
  ].join(' \\\n  ')
}

/** For a shell: nothing inside of single quotes means anything, but a single quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
