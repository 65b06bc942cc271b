// SPDX-License-Identifier: Apache-2.0
//! Makes differences of unsigned integers correct when they are negative.
//!
//! DataFusion subtracts unsigned integers in their own type, which wraps: 5 - 6 would be 2^64 - 1.
//! This rule widens both sides first: 64-bit integers to decimals, narrower ones to `bigint`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast};
use datafusion::optimizer::AnalyzerRule;

/// Number of digits of 2^64 - 1, the largest value of a column.
const DIGITS_64_BITS: u8 = 20;

/// The rule that widens both sides. It runs before DataFusion's own rules, which choose types.
#[derive(Debug)]
pub(crate) struct WideDifferences;

impl AnalyzerRule for WideDifferences {
    fn name(&self) -> &str {
        "wide_differences"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(of_plan)?.data)
    }
}

/// Rewrites one node of a plan whose inputs have already been rewritten.
fn of_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let wide = expr.transform_up(|expr| of_expr(expr, &schema))?;
        Ok(wide.update_data(|expr| name.restore(expr)))
    })?
    // Nodes above a changed input must see its new types.
    .map_data(LogicalPlan::recompute_schema)
}

fn of_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(difference) = &expr else {
        return Ok(Transformed::no(expr));
    };
    if difference.op != Operator::Minus {
        return Ok(Transformed::no(expr));
    }
    let BinaryExpr { left, right, .. } = difference;
    // If a side has no type, DataFusion's own rules report the error.
    let (Ok(of_left), Ok(of_right)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Transformed::no(expr));
    };
    let Some(to) = wide(&of_left, &of_right) else {
        return Ok(Transformed::no(expr));
    };
    let side = |side: &Expr| Box::new(cast(side.clone(), to.clone()));
    let difference = BinaryExpr::new(side(left), Operator::Minus, side(right));
    Ok(Transformed::yes(Expr::BinaryExpr(difference)))
}

/// The type in which a difference of these types is exact, if both are integers and at least one is
/// unsigned.
fn wide(left: &DataType, right: &DataType) -> Option<DataType> {
    let is_ours = left.is_integer()
        && right.is_integer()
        && (left.is_unsigned_integer() || right.is_unsigned_integer());
    let has_64_bits = [left, right].contains(&&DataType::UInt64);
    is_ours.then_some(match has_64_bits {
        true => DataType::Decimal128(DIGITS_64_BITS, 0),
        false => DataType::Int64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_with_an_unsigned_side_are_wider() {
        let decimal = Some(DataType::Decimal128(20, 0));
        assert_eq!(wide(&DataType::UInt64, &DataType::UInt8), decimal);
        assert_eq!(wide(&DataType::Int64, &DataType::UInt64), decimal);
        assert_eq!(
            wide(&DataType::UInt8, &DataType::UInt16),
            Some(DataType::Int64)
        );
        for other in [DataType::Float64, DataType::Utf8, DataType::Null] {
            assert_eq!(wide(&DataType::UInt64, &other), None);
        }
        assert_eq!(wide(&DataType::Int64, &DataType::Int32), None);
    }
}
