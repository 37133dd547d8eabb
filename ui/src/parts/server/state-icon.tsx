import type { JSX } from 'preact'

export type StateIconName = 'good' | 'bad' | 'busy' | 'waiting'

/** Shapes differ, so that colour is not needed to distinguish them. */
const PATHS: Readonly<Record<StateIconName, string>> = {
  good: 'M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1zM7 11.4l5-5.2-1.3-1.2L7 8.9 5.300 7.200 4 8.500z',
  bad: 'M5 1h6l4 4v6l-4 4H5l-4-4V5zM7.200 4v5h1.600V4zm0 6.400V12h1.600v-1.600z',
  busy: 'M8 2a6 6 0 0 1 5.200 3L15 4v5h-5l1.600-1.600A4 4 0 0 0 4.300 6L2.800 5A6 6 0 0 1 8 2zM8 14a6 6 0 0 1-5.200-3L1 12V7h5L4.400 8.600A4 4 0 0 0 11.700 10l1.500 1A6 6 0 0 1 8 14z',
  waiting:
    'M3.500 6.500a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3zm4.500 0a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3zm4.500 0a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3z',
}

/** A state icon, always accompanied by text. */
export function StateIcon({ icon }: { readonly icon: StateIconName }): JSX.Element {
  return (
    <svg
      class={`state-icon state-${icon}`}
      viewBox="0 0 16 16"
      width="14"
      height="14"
      aria-hidden="true"
    >
      <path d={PATHS[icon]} fill-rule="evenodd" />
    </svg>
  )
}
