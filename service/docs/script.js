// Small comforts; without them the page says the same.
document.getElementById('setup').textContent = document
  .getElementById('setup')
  .textContent.replace('http://127.0.0.1:4000', location.origin)

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent)
    button.textContent = 'Copied'
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling)
    button.textContent = 'Selected'
  }
  setTimeout(() => {
    button.textContent = 'Copy'
  }, 1500)
}

for (const button of document.querySelectorAll('.code button')) {
  button.addEventListener('click', () => void copy(button))
}

const filter = document.getElementById('filter')
filter.addEventListener('input', () => {
  const wanted = filter.value.trim().toLowerCase()
  for (const entry of document.querySelectorAll('nav li')) entry.hidden = !entry.dataset.find.includes(wanted)
  for (const section of document.querySelectorAll('nav section')) {
    section.hidden = section.querySelector('li:not([hidden])') === null
  }
})
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target instanceof HTMLInputElement) return
  event.preventDefault()
  filter.focus()
})
