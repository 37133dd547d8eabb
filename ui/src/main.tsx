import './styles/base.css'
import './styles/shell.css'
import { render } from 'preact'
import { App } from './app/app.tsx'
import { startTheme } from './app/theme.ts'
// Imported last, since it overrides the others.
import './styles/forced-colours.css'

const root = document.getElementById('page')
if (root !== null) {
  startTheme()
  render(<App />, root)
}
