use clap::Args;
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {}
pub(crate) fn run(_args: &ShowArgs) -> anyhow::Result<crate::exit::Outcome> { anyhow::bail!("not yet") }
