import { render } from 'preact'
import { ChatApp } from './chat/app.tsx'
import { beginTheme } from './parts/theme.tsx'

beginTheme()

const place = document.getElementById('page')
if (place !== null) render(<ChatApp />, place)
