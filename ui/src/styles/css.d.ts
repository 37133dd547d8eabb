/** Styles are bundled by esbuild; importing them has no value. */
declare module '*.css'
