import { useState } from 'preact/hooks'

interface KeyFormProps {
  readonly refusal: string | null
  readonly done: (key: string) => void
}

/** Where the server gives no key away, a person brings one. */
export function KeyForm({ refusal, done }: KeyFormProps) {
  const [key, setKey] = useState('')
  const submit = (event: Event) => {
    event.preventDefault()
    done(key)
  }
  return (
    <div class="key-form">
      <form class="card" onSubmit={submit}>
        <h2>Come in</h2>
        <p class="soft">The rooms of a workspace open with one of its API keys.</p>
        <div class="field">
          <label for="key">API key</label>
          <input
            id="key"
            type="password"
            autocomplete="off"
            required
            value={key}
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </div>
        {refusal === null ? null : (
          <p class="notice bad" role="alert">
            {refusal}
          </p>
        )}
        <button class="primary">Enter</button>
      </form>
    </div>
  )
}
