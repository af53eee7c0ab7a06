import { curlOf } from './curl.ts'
import { type Html, html, prose, raw } from './html.ts'
import { resolved, type Schemas, schemaTree } from './schema.ts'
import type { ShownContract, ShownDocument, ShownOperation, ShownParameter, ShownResponse } from './shown.ts'

interface Shown {
  readonly method: string
  readonly path: string
  readonly operation: ShownOperation
}

/** The whole page: nothing is fetched from anywhere, so that it works where the server works. */
export function docsPage(document: ShownDocument, assets: { readonly style: string; readonly script: string }): string {
  const shown = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Shown => ({ method: method.toUpperCase(), path, operation })),
  )
  const chapters = document.tags.map((tag) => ({
    ...tag,
    operations: shown.filter(({ operation }) => operation.tags.includes(tag.name)),
  }))
  const { info, components } = document
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API</title>
<link rel="icon" href="data:,">
<style>${raw(assets.style)}</style>
</head>
<body>
<nav aria-label="Operations">
<a class="brand" href="#top">${info.title}</a>
<input id="filter" type="search" placeholder="Filter" aria-label="Filter operations">
${chapters.map(({ name, operations }) => html`<section><h2><a href="#${name}">${name}</a></h2><ul>${operations.map(entry)}</ul></section>`)}
</nav>
<main id="top">
<header>
<h1>${info.title} <small>${info.version}</small></h1>
<p class="lead">${info.summary}</p>
<p>${prose(info.description)}</p>
<p>The same for programs: <a href="/openapi.json"><code>/openapi.json</code></a>, OpenAPI 3.1.</p>
<h2>Before you start</h2>
<p>The examples use variables of your shell. When the server starts, it prints where the API key of its demo workspace is.</p>
${code(`URL=http://127.0.0.1:4000\nKEY=your-api-key\nOPERATOR=your-operator-token`, 'setup')}
</header>
${chapters.map((chapter) => html`<section class="chapter" id="${chapter.name}"><h2>${chapter.name}</h2><p>${prose(chapter.description)}</p>${chapter.operations.map((each) => card(each, components.schemas))}</section>`)}
</main>
<script>${raw(assets.script)}</script>
</body>
</html>
`
  return page.text
}

function entry({ method, path, operation }: Shown): Html {
  return html`<li data-find="${`${method} ${path} ${operation.summary}`.toLowerCase()}"><a href="#${operation.operationId}">${badge(method)}<span>${path}</span></a></li>`
}

function badge(method: string): Html {
  return html`<b class="method ${method.toLowerCase()}">${method}</b>`
}

function card({ method, path, operation }: Shown, schemas: Schemas): Html {
  const { operationId, summary, description } = operation
  const body = operation.requestBody?.content['application/json']
  return html`<article id="${operationId}">
<h3><a href="#${operationId}">${summary}</a></h3>
<p class="route">${badge(method)} <code>${path}</code> ${access(operation)}</p>
${description === undefined ? null : html`<p>${prose(description)}</p>`}
${promise(operation['x-onceonly'])}
${parameters(operation.parameters ?? [])}
${body === undefined ? null : html`<h4>Body</h4>${schemaTree(body.schema, schemas)}`}
<h4>Example</h4>
${code(curlOf(method, path, operation))}
<h4>Answers</h4>
<dl class="answers">${Object.entries(operation.responses).map(([status, response]) => answer(status, response, schemas))}</dl>
${checklist(operation['x-onceonly'])}
</article>`
}

function access({ security }: ShownOperation): Html {
  const names = security.flatMap((each) => Object.keys(each))
  if (names.length === 0) return html`<span class="access">open to anyone</span>`
  return html`<span class="access">${names.includes('operator') ? 'operator token' : 'API key'}</span>`
}

/** The most important fact for a reader of this API. */
function promise(contract: ShownContract | undefined): Html | null {
  if (contract === undefined) return null
  const answerOn = (topic: string) => contract.checklist.find((each) => each.topic === topic)?.answer ?? 'open'
  if (contract.kind === 'natural')
    return html`<p class="promise"><b>Repeating it</b>: ${prose(contract.repeats ?? '')}.</p>`
  return html`<p class="promise"><b>Safe to repeat.</b> Key: ${answerOn('key')}. Kept: ${answerOn('retention')}. While the first attempt runs: ${answerOn('running')}.</p>`
}

function parameters(parameters: readonly ShownParameter[]): Html | null {
  if (parameters.length === 0) return null
  const rows = parameters.map(
    ({ name, in: where, required, description }) =>
      html`<li><code class="name">${name}</code> <span class="type">${where}</span>${required === true ? null : html` <span class="hint">optional</span>`} <span class="about">${prose(description ?? '')}</span></li>`,
  )
  return html`<h4>Parameters</h4><ul class="tree">${rows}</ul>`
}

function answer(status: string, { description, headers, content }: ShownResponse, schemas: Schemas): Html {
  const [type, media] = Object.entries(content ?? {})[0] ?? []
  const isProblem = type === 'application/problem+json'
  const reasons = description.split('; ').map((reason) => html`<div>${prose(reason)}</div>`)
  const named = Object.keys(headers ?? {}).filter((name) => !name.startsWith('Access-Control-'))
  const tree =
    media === undefined || isProblem || resolved(media.schema, schemas).properties === undefined
      ? null
      : html`<details><summary>${media.schema.$ref?.split('/').at(-1) ?? 'Members'}</summary>${schemaTree(media.schema, schemas)}</details>`
  return html`<dt class="s${status.slice(0, 1)}">${status}</dt><dd>${reasons}
${named.length === 0 ? null : html`<div class="hint">${named.join(', ')}</div>`}${tree}</dd>`
}

function checklist(contract: ShownContract | undefined): Html | null {
  if (contract === undefined) return null
  const rows = contract.checklist.map(
    ({ question, answer }) =>
      html`<tr><th scope="row">${question}</th><td>${answer === null ? html`<b class="open">open</b>` : prose(answer)}</td></tr>`,
  )
  return html`<details class="design"><summary>Design checklist</summary><table>${rows}</table></details>`
}

function code(text: string, id?: string): Html {
  return html`<div class="code"><pre tabindex="0"${id === undefined ? null : html` id="${id}"`}>${text}</pre><button type="button">Copy</button></div>`
}
