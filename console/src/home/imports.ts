import { type Answer, fresh, settled } from './api.ts'
import { checked, type Demonstration, shownOf, text } from './demo.ts'

const file = 'TY  - JOUR\nTI  - On retries\nER  - \n'
const name = 'retries.ris'

export const imports: Demonstration = {
  name: 'imports',
  title: 'Imports',
  promise: 'A file is parsed once, however often its storage announces it.',
  button: 'Notify twice',
  operations: 'POST /hooks/s3',
  async run(api) {
    const started = checked(
      await api.send('POST', '/api/imports', {
        key: `home-${fresh()}`,
        body: { projectId: 'home', searchName: `Search ${fresh()}`, files: [name] },
      }),
    )
    const searchId = text(started.body['searchId'])
    const [upload] = started.body['uploads'] as readonly { readonly objectKey: string }[]
    const stored = checked(await api.send('PUT', `/api/imports/${searchId}/files/${name}`, { body: file }))
    const notification = announcement(upload?.objectKey ?? '', stored)
    const sent = { secret: api.demo.hookSecret, body: notification }
    const notified = [await api.send('POST', '/hooks/s3', sent), await api.send('POST', '/hooks/s3', sent)] as const
    const ended = await settled(
      () => api.send('GET', `/api/imports/${searchId}`),
      ({ body }) => body['state'] === 'Completed' || body['state'] === 'Error',
    )
    const { state, references } = ended.body
    const isOnce = state === 'Completed' && references === 1
    const shown = (title: string, answer: Answer) => ({
      ...shownOf(title, answer, [
        ['Received', text(answer.body['received'])],
        ['Duplicates', text(answer.body['duplicates'])],
      ]),
      ...(answer.body['duplicates'] === 1 ? ({ badge: 'duplicate', tone: 'wait' } as const) : {}),
    })
    return {
      answers: [
        shown('First notification', notified[0]),
        shown('Same notification again', notified[1]),
        {
          title: 'The import',
          badge: text(state),
          tone: isOnce ? 'good' : 'wait',
          facts: [
            ['Files', name],
            ['References', text(references)],
          ],
        },
      ],
      kept: isOnce,
      verdict: isOnce
        ? 'Announced by the upload and by two notifications, parsed once: 1 reference.'
        : `The import is ${text(state)} with ${text(references)} references.`,
      links: [
        {
          text: 'The saga in the console',
          address: `/console/sagas/SearchImportJob/${encodeURIComponent(searchId)}`,
        },
      ],
    }
  },
}

/** As S3 sends it. */
function announcement(key: string, { etag, body }: Answer): unknown {
  const bucket = 'onceonly-uploads'
  return {
    Records: [
      {
        eventVersion: '2.1',
        eventSource: 'aws:s3',
        eventTime: new Date().toISOString(),
        eventName: 'ObjectCreated:Put',
        s3: {
          bucket: { name: bucket, arn: `arn:aws:s3:::${bucket}` },
          object: {
            key: encodeURIComponent(key).replaceAll('%2F', '/'),
            size: body['bytes'] ?? file.length,
            eTag: (etag ?? '').replaceAll('"', ''),
            sequencer: Date.now().toString(16).toUpperCase().padStart(16, '0'),
          },
        },
      },
    ],
  }
}
