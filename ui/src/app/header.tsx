import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { type View, writeQuery } from '../model/query.ts'
import { usePage } from '../parts/page.ts'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

const LINKS: readonly (readonly [View, string])[] = [
  ['overview', 'Overview'],
  ['lanes', 'Lanes'],
  ['tail', 'Live'],
  ['sources', 'Top sources'],
  ['clusters', 'Clusters'],
]

const NEXT_THEME: Readonly<Record<Theme, Theme>> = {
  system: 'light',
  light: 'dark',
  dark: 'system',
}

export function Header({
  onSignOut,
}: {
  readonly onSignOut: (() => void) | undefined
}): JSX.Element {
  const { query, change, caller } = usePage()
  return (
    <header class="header">
      <nav aria-label="Views">
        {LINKS.map(([view, text]) => (
          <a
            key={view}
            href={writeQuery({ ...query, view }) || '?'}
            aria-current={query.view === view ? 'page' : undefined}
            onClick={(event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return
              event.preventDefault()
              change({ view })
            }}
          >
            {text}
          </a>
        ))}
      </nav>
      <div class="header-user">
        <span title={caller.groups.join('\n')}>{caller.name}</span>
        <ThemeButton />
        {onSignOut !== undefined && (
          <button type="button" onClick={onSignOut}>
            Sign out
          </button>
        )}
      </div>
    </header>
  )
}

function ThemeButton(): JSX.Element {
  const [theme, setTheme] = useState(chosenTheme)
  const choose = (): void => {
    const next = NEXT_THEME[theme]
    chooseTheme(next)
    setTheme(next)
  }
  return (
    <button type="button" onClick={choose} title="Colours: as the system, light, dark">
      Theme: {theme}
    </button>
  )
}
