import type { OpenApiDocument } from 'onceonly/openapi'

/** As much of our OpenAPI document as is put in other words. */
interface Operation {
  readonly description?: string
  readonly 'x-onceonly'?: Contract
}

interface Contract {
  readonly kind: 'command' | 'batch' | 'natural'
  readonly repeats?: string
  readonly checklist: readonly { readonly topic: string; readonly question: string; readonly answer: string | null }[]
}

/** The document for people: what a repeated request does stands in the description, where every renderer shows it. */
export function readable(document: OpenApiDocument): OpenApiDocument {
  const paths = Object.entries((document.paths ?? {}) as Record<string, Record<string, Operation>>)
  return {
    ...document,
    paths: Object.fromEntries(
      paths.map(([path, methods]) => [
        path,
        Object.fromEntries(
          Object.entries(methods).map(([method, operation]) => [method, readableOperation(operation)]),
        ),
      ]),
    ),
  }
}

function readableOperation({ 'x-onceonly': contract, ...operation }: Operation): Operation {
  if (contract === undefined) return operation
  const parts = [operation.description, promise(contract), checklist(contract)]
  return { ...operation, description: parts.filter((part) => part !== undefined).join('\n\n') }
}

function promise({ kind, repeats = '', checklist }: Contract): string {
  if (kind === 'natural') return `**Repeating it**: ${repeats}.`
  const answerOn = (wanted: string) => checklist.find(({ topic }) => topic === wanted)?.answer ?? 'open'
  return `**Safe to repeat.** Key: ${answerOn('key')}. Kept: ${answerOn('retention')}. While the first attempt runs: ${answerOn('running')}.`
}

/** Folded, and in HTML, because a table of Markdown cannot be: how it is sent comes first for most readers. */
function checklist({ checklist }: Contract): string {
  const rows = checklist.map(
    ({ question, answer }) =>
      `<tr><td>${escaped(question)}</td><td>${answer === null ? '<b>open</b>' : escaped(answer)}</td></tr>`,
  )
  return `<details><summary>Design checklist</summary><table>${rows.join('')}</table></details>`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
