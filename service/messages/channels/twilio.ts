import { Buffer } from 'node:buffer'
import type { Channel } from './channel.ts'
import { callProvider } from './http.ts'

/**
 * A text message in the manner of Twilio: form-encoded, with basic authentication. The account stands in the URL
 * (`https://SID:TOKEN@api.twilio.com/2010-04-01/Accounts/SID/Messages.json?From=%2B15550100`), and so does the sender.
 * It knows no idempotency keys, so a lost answer stays unknown.
 */
export function createTwilio(configured: string): Channel {
  const url = new URL(configured)
  const { username, password, searchParams } = url
  const from = searchParams.get('From') ?? ''
  url.username = ''
  url.password = ''
  searchParams.delete('From')
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const authorization = username === '' ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }

  return {
    name: 'twilio',
    dedups: false,
    reference: () => null,
    reaches: ({ phone }) => phone !== null,
    complaints({ phone, attachments }) {
      const inline = attachments.findIndex(({ base64 }) => base64 !== undefined)
      return [
        ...(phone === null ? [{ field: 'recipientPhone', detail: 'is needed by the channel twilio' }] : []),
        ...(inline < 0
          ? []
          : [{ field: `attachments[${inline}].base64`, detail: 'cannot be sent by the channel twilio: give a url' }]),
      ]
    },
    send({ messageId, phone, body, attachments }, signal) {
      const form = new URLSearchParams({ To: phone ?? '', From: from, Body: body })
      for (const { url: media } of attachments) if (media !== undefined) form.append('MediaUrl', media)
      const init = { headers: { ...authorization }, body: form, signal }
      return callProvider(url.href, init, ({ sid }) => sid, `twilio:${messageId}`)
    },
  }
}
