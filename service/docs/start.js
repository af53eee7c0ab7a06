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

// What the renderer lacks for people who hear the page: no link stands inside of a button, every part is a named region,
// and no level of headings is left out. There is one server, so it is not chosen.
const accessible = ({ React: { createElement } }) => {
  const unseen = (element, text) => createElement(element, { key: text, className: 'unseen' }, text)
  const region = (label) => (Original) => (props) =>
    createElement('section', { 'aria-label': label }, createElement(Original, props))
  return {
    components: { DeepLink: ({ text }) => createElement('span', null, text), ServersContainer: () => null },
    wrapComponents: {
      InfoContainer: region('About'),
      AuthorizeBtnContainer: region('Authorization'),
      FilterContainer: region('Filter'),
      ExamplesSelect: (Original) => (props) =>
        createElement('label', null, unseen('span', 'Example'), createElement(Original, props)),
      TextArea: (Original) => (props) => createElement(Original, { ...props, 'aria-label': 'Value' }),
      operations: (Original) => (props) => [
        unseen('h2', 'Operations'),
        createElement(Original, { key: 'operations', ...props }),
      ],
    },
  }
}

const ui = SwaggerUIBundle({
  spec,
  dom_id: '#docs',
  plugins: [accessible],
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  // Its colours are too pale, or too dark.
  syntaxHighlight: { activated: false },
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
