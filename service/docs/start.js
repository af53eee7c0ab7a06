const dark = matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', paint)
paint()

const [spec, demo] = await Promise.all([asked('/docs/openapi.json'), asked('/chat/demo')])

// A link to an operation has its id only; the renderer wants its group as well.
const wanted = decodeURIComponent(location.hash.slice(1))
const operations = Object.values(spec.paths).flatMap((methods) => Object.values(methods))
const linked = operations.find(({ operationId }) => operationId === wanted)
if (linked !== undefined) history.replaceState(null, '', `#/${linked.tags[0]}/${linked.operationId}`)

const ui = SwaggerUIBundle({
  spec,
  dom_id: '#docs',
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  onComplete() {
    // Only a demo shows its key, and only to its own machine: then everything can be tried at once.
    if (demo !== null) ui.preauthorizeApiKey('apiKey', demo.apiKey)
  },
})

async function asked(path) {
  const response = await fetch(path)
  return response.ok ? response.json() : null
}
